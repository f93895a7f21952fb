"""Development set-up of Octavo: what `packaging/dev.py` is made of.

Standard library only, since it runs before anything is installed. It knows nothing of the application beyond the names
of its programs.
"""
