package restrack

// Count is one row of a device's summary.
type Count struct {
	Name    string // as the kernel gives it: pd, cq, qp, …; newer kernels may have more
	Objects uint64 // how many there are
}

// DecodeSummary decodes the payload of a reply to RES_GET. Rows stay in the
// kernel's order; one without a name is left out. An error is a [MessageError].
func DecodeSummary(data []byte) ([]Count, error) {
	counts, err := summary(data)
	return counts, blame(commandSummary, 0, err)
}

func summary(data []byte) ([]Count, error) {
	var counts []Count
	for len(data) > 0 {
		rows, rest, err := nextAttribute(data)
		if err != nil {
			return nil, err
		}
		data = rest
		if rows.kind != attrSummary {
			continue
		}
		for b := rows.data; len(b) > 0; {
			row, rest, err := nextAttribute(b)
			if err != nil {
				return nil, rows.in(err)
			}
			b = rest
			if row.kind != attrSummaryEntry {
				continue
			}
			count, err := summaryRow(row.data)
			if err != nil {
				return nil, row.in(err)
			}
			if count.Name != "" {
				counts = append(counts, count)
			}
		}
	}
	return counts, nil
}

func summaryRow(data []byte) (count Count, err error) {
	for len(data) > 0 {
		a, rest, err := nextAttribute(data)
		if err != nil {
			return Count{}, err
		}
		data = rest
		switch a.kind {
		case attrSummaryName:
			count.Name = string(a.text())
		case attrSummaryCurrent:
			if count.Objects, err = a.uint64(); err != nil {
				return Count{}, err
			}
		}
	}
	return count, nil
}
