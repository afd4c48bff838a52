"""Tarnawski et al.: the throughput dynamic program over downsets, accelerators and CPUs."""
