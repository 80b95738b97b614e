/** A time limit as timers take it: in whole milliseconds, 24 days at most. A longer timer would fire at once. */
export const timerMs = (limit: number): number => Math.min(Math.max(Math.ceil(limit), 0), 2 ** 31 - 1)
