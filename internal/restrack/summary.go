package restrack

// Count is one row of a device's summary.
type Count struct {
	Name    string // as the kernel gives it: pd, cq, qp, …; newer kernels may have more
	Objects uint64 // how many there are
}

// summary decodes the payload of a reply to RES_GET. Rows stay in the kernel's order; one
// without a name is left out.
func summary(data []byte) ([]Count, error) {
	var counts []Count
	err := entries(data, attrSummary, attrSummaryEntry, func(row []byte) error {
		var count Count
		for a, err := range attributes(row) {
			if err != nil {
				return err
			}
			switch a.kind {
			case attrSummaryName:
				count.Name = string(a.text())
			case attrSummaryCurrent:
				if count.Objects, err = a.uint64(); err != nil {
					return err
				}
			}
		}
		if count.Name != "" {
			counts = append(counts, count)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return counts, nil
}
