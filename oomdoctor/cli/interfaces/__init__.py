"""The commands by which other programs use oomdoctor."""
