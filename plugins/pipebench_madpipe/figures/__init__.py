"""The figures of the MadPipe paper: what to run, what the paper claims, and a judge of the rows."""
