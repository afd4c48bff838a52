"""The discrete-event simulator: what a plan does under a schedule, on devices and links."""
