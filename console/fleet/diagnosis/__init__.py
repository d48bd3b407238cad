"""Why a worker does not do its work: an ordered examination, one verdict, the next step. Pure."""
