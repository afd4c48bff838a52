"""What drafts take about, before there is an order of their tasks that keeps to all: sums, memory, a clock."""
