"""Tracking as people read it: blocks of text and tables, written as HTML, Markdown or plain text."""
