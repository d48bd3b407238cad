"""The pure middle: frozen values and the functions that join them. No I/O, no clock, no psycopg, no textual."""
