"""The values that flow through pipebench: frozen, validated, written to and read from JSON.

Pure: nothing here reads a file, a clock or a random number.
"""
