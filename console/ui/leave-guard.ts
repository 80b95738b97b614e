import { useLayoutEffect } from 'preact/hooks'
import { words } from '../copy/common.ts'
import { leaveGuard } from '../lib/router.ts'

/** Asks before a link or the palette leads away from what was typed; then `drop` makes sure that it is not kept. */
export function useLeaveGuard(isDirty: boolean, drop?: () => void): void {
  useLayoutEffect(() => {
    if (!isDirty) return
    const ask = (): boolean => {
      const isSure = confirm(words.unsaved_question)
      if (isSure) drop?.()
      return isSure
    }
    leaveGuard.asks.add(ask)
    return () => void leaveGuard.asks.delete(ask)
  }, [isDirty])
}
