"""Files: the project's own documents, foreign profiles, device and cluster tables, quantities as text."""
