import { useEffect, useRef, useState } from 'preact/hooks'
import { cells } from '../copy/cells.ts'
import { checkBuild } from '../lib/new-build.ts'
import { TextArea } from '../ui/field.tsx'
import { Icon } from '../ui/icon.tsx'
import { Skeleton } from '../ui/resource.tsx'
import type { CodeEditor, Mark } from './code-editor.ts'

const shownMax = 5
const lineOf = (text: string, at: number): number => text.slice(0, at).split('\n').length

/**
 * JSON with its problems, on their lines and below. The editor is loaded when the first one opens, and owns the text
 * from then on: a new `key` gives it another.
 */
export function JsonEditor({
  value,
  onInput,
  marks,
}: {
  value: string
  onInput(text: string): void
  marks: readonly Mark[]
}) {
  const host = useRef<HTMLDivElement>(null)
  const editor = useRef<CodeEditor>(undefined)
  const [state, setState] = useState<'loading' | 'open' | 'failed'>('loading')
  const heard = useRef(onInput)
  heard.current = onInput
  useEffect(() => {
    let isGone = false
    import('./code-editor.ts').then(
      ({ openEditor }) => {
        if (isGone) return
        const label = `${cells.editor_label}. ${cells.editor_keys}`
        const onInput = (text: string): void => heard.current(text)
        editor.current = openEditor(host.current as HTMLElement, { text: value, label, onInput })
        setState('open')
      },
      () => {
        setState('failed')
        void checkBuild()
      },
    )
    return () => {
      isGone = true
      editor.current?.close()
    }
  }, [])
  useEffect(() => {
    // Does not take the focus back from a person who moved on while it loaded.
    if (!document.activeElement?.matches('input, button, dialog *')) editor.current?.focus()
  }, [state])
  useEffect(() => editor.current?.mark(marks), [state, marks])
  return (
    <div class="stack-tight">
      {state === 'loading' && <Skeleton lines={8} />}
      <div ref={host} hidden={state !== 'open'} />
      {state === 'failed' && (
        <TextArea label={cells.editor_label} value={value} onInput={onInput} rows={24} mono />
      )}
      <p class="soft small">{cells.editor_keys}</p>
      <div role="status">
        <ul class="editor-faults">
          {marks.slice(0, shownMax).map(({ from, message }) => (
            <li key={`${from} ${message}`}>
              <Icon name="circle-x" />
              <button type="button" onClick={() => editor.current?.goTo(from)}>
                {cells.line(lineOf(value, from))}
              </button>
              <span>{message}</span>
            </li>
          ))}
          {marks.length > shownMax && <li>{cells.more_faults(marks.length - shownMax)}</li>}
        </ul>
      </div>
    </div>
  )
}
