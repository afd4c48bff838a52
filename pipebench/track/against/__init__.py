"""Two revisions of one distribution, installed side by side and measured in turns."""
