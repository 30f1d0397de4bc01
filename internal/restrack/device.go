package restrack

// Device is an RDMA device. What the kernel did not tell has its zero value.
type Device struct {
	Index uint32 // stays with the device; not given again soon after it is removed
	Name  string // as in /sys/class/infiniband; a device can be renamed
}

// decodeDevice decodes the payload of one reply to GET. Like all decoders it ignores the
// attributes that it does not know, and does without those that are absent.
func decodeDevice(data []byte) (device Device, err error) {
	for a, err := range attributes(data) {
		if err != nil {
			return Device{}, err
		}
		switch a.kind {
		case attrDeviceIndex:
			if device.Index, err = a.uint32(); err != nil {
				return Device{}, err
			}
		case attrDeviceName:
			device.Name = string(a.text())
		}
	}
	return device, nil
}
