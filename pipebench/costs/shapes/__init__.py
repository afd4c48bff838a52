"""What operators and layers are made of: weights, products, FLOP, bytes of another precision. No times."""
