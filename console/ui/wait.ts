import { useEffect, useState } from 'preact/hooks'
import type { Refused } from '../copy/errors.ts'

/** Seconds until what was refused may be tried again; 0: now. */
export const waitOf = ({ data: { retry_after } }: Refused): number =>
  Math.min(Number(retry_after ?? 0) || 0, 3600)

/** The same, counted down. */
export function useWait(error: Refused): number {
  const [wait, setWait] = useState(0)
  useEffect(() => {
    setWait(waitOf(error))
    const timer = setInterval(() => setWait((left) => Math.max(0, left - 1)), 1000)
    return () => clearInterval(timer)
  }, [error])
  return wait
}
