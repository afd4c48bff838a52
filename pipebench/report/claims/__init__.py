"""What the page of claims says, whatever it is written in: entries, counts, costs, and how all was measured."""
