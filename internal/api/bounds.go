package api

// maxItems is the most items of one list.
const maxItems = 4096

// cut returns no more items of a list than a status may have.
func cut[T any](list []T) []T { return list[:min(len(list), maxItems)] }

// count returns a number of things, which is never less than none.
func count[T ~int | ~int64](n T) T { return max(n, 0) }
