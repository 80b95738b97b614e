import { signal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { words } from '../copy/common.ts'
import { IconButton } from './button.tsx'
import { Text } from './text.tsx'

type Toast = { id: number; text: string; action?: { label: string; run(): void } | undefined }
const shown = signal<Toast[]>([])
let count = 0

/** Says what was done, with a way to undo it if there is one. */
export function toast(text: string, action?: Toast['action']): void {
  const id = ++count
  shown.value = [...shown.value.slice(-2), { id, text, action }]
  close(id, action ? 10_000 : 4_000)
}

/** It stays while it has the focus. */
function close(id: number, after: number): void {
  setTimeout(() => {
    if (document.querySelector(`[data-toast="${id}"]:is(:hover, :focus-within)`)) return close(id, 1_000)
    remove(id)
  }, after)
}
const remove = (id: number): void => {
  shown.value = shown.value.filter((one) => one.id !== id)
}

export const forgetToasts = (): void => void (shown.value = [])

/** Above dialogs too, because it is the newest popover of the top layer. */
export function Toasts() {
  const own = useRef<HTMLDivElement>(null)
  const all = shown.value
  useEffect(() => {
    own.current?.hidePopover()
    if (all.length > 0) own.current?.showPopover()
  }, [all])
  return (
    <div ref={own} popover="manual" class="toasts" role="status" aria-live="polite">
      {all.map(({ id, text, action }) => (
        <div key={id} class="toast" data-toast={id}>
          <Text long>{text}</Text>
          {action && (
            <button
              type="button"
              class="button is-quiet is-small"
              onClick={() => {
                action.run()
                remove(id)
              }}
            >
              {action.label}
            </button>
          )}
          <IconButton icon="x" label={words.close} small onClick={() => remove(id)} />
        </div>
      ))}
    </div>
  )
}
