/*
 * Memory of the host as a dma-buf, from either of the devices by which the kernel
 * makes one. Each helper returns 0 or a positive errno, as those of shim.h.
 */
#ifndef RDMA_EXPORTER_SHIM_DMABUF_H
#define RDMA_EXPORTER_SHIM_DMABUF_H

#include <errno.h>
#include <fcntl.h>
#include <linux/types.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>

/* Headers of kernels before 5.6 lack linux/dma-heap.h. */
#if __has_include(<linux/dma-heap.h>)
#include <linux/dma-heap.h>
#endif
#if __has_include(<linux/udmabuf.h>)
#include <linux/udmabuf.h>
#endif

/* A dma-buf of all of a memfd, which is sealed against shrinking. */
static inline int shim_udmabuf(int device, int memfd, uint64_t size, int *dmabuf)
{
#ifdef UDMABUF_CREATE
	struct udmabuf_create create = { .memfd = (uint32_t)memfd, .flags = UDMABUF_FLAGS_CLOEXEC, .size = size };

	*dmabuf = ioctl(device, UDMABUF_CREATE, &create);
	return *dmabuf < 0 ? errno : 0;
#else
	return ENOSYS;
#endif
}

/* A dma-buf of a heap. */
static inline int shim_dma_heap(int heap, uint64_t size, int *dmabuf)
{
#ifdef DMA_HEAP_IOCTL_ALLOC
	struct dma_heap_allocation_data data = { .len = size, .fd_flags = O_RDWR | O_CLOEXEC };

	if (ioctl(heap, DMA_HEAP_IOCTL_ALLOC, &data) < 0)
		return errno;
	*dmabuf = (int)data.fd;
	return 0;
#else
	return ENOSYS;
#endif
}

#endif
