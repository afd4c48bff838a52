"""How far a prediction is from what was measured."""


def prediction_error(predicted_s: float | None, measured_s: float | None) -> float | None:
    """(predicted - measured) / measured: below zero where too much was promised."""
    if predicted_s is None or not measured_s:
        return None
    return (predicted_s - measured_s) / measured_s
