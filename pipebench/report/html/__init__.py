"""Pages: one self-contained HTML file each, no network."""
