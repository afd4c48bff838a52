"""Night after night: what is measured, kept, judged and told (pipebench.track.rule says how timing is judged)."""
