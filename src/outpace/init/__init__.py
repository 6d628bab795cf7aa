"""Init: from a source file and the name of a function to a task whose inputs and checks can be relied on."""
