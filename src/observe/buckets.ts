const seconds = (...milliseconds: number[]): number[] => milliseconds.map((one) => one / 1000)

/** Upper bounds of the buckets of histograms. */
export const requests = seconds(1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 15_000)
export const statements = seconds(0.2, 0.5, 1, 2.5, 5, 10, 50, 250, 1000, 5000, 15_000)
export const bus = seconds(5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000)
export const sizes = [1, 2, 4, 8, 16, 32, 64, 128]
