"""The figures of the course, each drawn from numbers that regard computes, in two languages."""
