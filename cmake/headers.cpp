// The precompiled header belongs to some target; this is that target's only source.
