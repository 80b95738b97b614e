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

/** Asks before closing or leaving loses what was typed; while it is sent, nothing is lost. Returns what closes. */
export function useAskingFirst(onClose: () => void, isDirty = false, isBusy = false): () => void {
  const wouldLose = isDirty && !isBusy
  useLeaveGuard(wouldLose)
  return () => {
    if (!wouldLose || confirm(words.unsaved_question)) onClose()
  }
}
