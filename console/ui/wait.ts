import { useLayoutEffect, useState } from 'preact/hooks'
import type { Refused } from '../copy/errors.ts'

/** Seconds until what was refused last may be tried again, counted down to 0. */
export function useWait(error: Refused | null): number {
  const [wait, setWait] = useState(0)
  useLayoutEffect(() => {
    if (error) setWait(Math.min(Number(error.data.retry_after ?? 0) || 0, 3600))
    const timer = setInterval(() => setWait((left) => Math.max(0, left - 1)), 1000)
    return () => clearInterval(timer)
  }, [error])
  return wait
}
