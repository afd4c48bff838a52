"""One trial: what is searched, scored and kept as a row; and which trials a comparison has."""
