"""Night after night: what is measured, kept, judged and told (`rule/` says how timing is judged)."""
