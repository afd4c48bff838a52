"""What operators, parameters and tensors add up to: for one stage, and for each interval of an order."""
