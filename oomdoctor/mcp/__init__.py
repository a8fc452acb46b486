"""The tools that agents call over the Model Context Protocol: the use cases of `oomdoctor.api`, with small typed answers."""
