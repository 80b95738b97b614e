import { useEffect, useId, useRef, useState } from 'preact/hooks'
import type { Refused } from '../copy/errors.ts'
import { isUuid } from '../lib/uuid.ts'
import { ErrorNote } from './resource.tsx'
import { Text } from './text.tsx'

export type Found = { id: string; label: string; about?: string | null }
/** What a text has found, or why it could not be searched for. */
export type Search = { found: readonly Found[]; error?: Refused | undefined }
const shownMax = 8

/**
 * A field that finds one thing by typed text or by its id; `value` is the id of the chosen one. `none`: what to say if
 * the text finds nothing. `beginsOpen`: it offers some before anything is typed.
 */
export function Picker({
  label,
  value,
  onChange,
  find,
  placeholder,
  none,
  beginsOpen = false,
}: {
  label: string
  value: string
  onChange(id: string): void
  find(text: string, signal: AbortSignal): Promise<Search>
  placeholder: string
  none: string
  beginsOpen?: boolean
}) {
  const id = useId()
  const [text, setText] = useState('')
  const [search, setSearch] = useState<(Search & { sought: string }) | null>(null)
  const [tries, setTries] = useState(0)
  const [at, setAt] = useState(0)
  const [isSought, seek] = useState(false)
  const chosen = useRef('')
  const input = useRef<HTMLInputElement>(null)
  const found = search?.found ?? []
  const isOfText = search?.sought === text.trim()
  const isOpen = isSought && found.length > 0 && !value
  useEffect(() => {
    // Starts again once the chosen one was used.
    if (!value && chosen.current) setText('')
    chosen.current = value
  }, [value])
  useEffect(() => {
    const sought = text.trim()
    if (value === '' && isUuid(sought)) onChange(sought)
    if (value || !(sought || beginsOpen)) return setSearch(null)
    if (!isSought) return
    const stop = new AbortController()
    const timer = setTimeout(
      async () => {
        const { found, error } = await find(sought, stop.signal)
        if (stop.signal.aborted) return
        setSearch({ sought, found: found.slice(0, shownMax), error })
        setAt(0)
      },
      sought ? 250 : 0,
    )
    return () => {
      clearTimeout(timer)
      stop.abort()
    }
  }, [text, value, isSought, tries])
  const again = (): void => {
    input.current?.focus()
    seek(true)
    setSearch(null)
    setTries(tries + 1)
  }
  const choose = (one: Found | undefined): void => {
    if (!one) return
    setText(one.label)
    onChange(one.id)
  }
  return (
    <div class="field picker">
      <label for={id}>{label}</label>
      <input
        ref={input}
        id={id}
        class="input"
        role="combobox"
        aria-expanded={isOpen}
        aria-controls={`${id}-list`}
        aria-activedescendant={isOpen ? `${id}-${at}` : undefined}
        aria-autocomplete="list"
        autocomplete="off"
        spellcheck={false}
        placeholder={placeholder}
        value={text}
        onInput={(event) => {
          chosen.current = ''
          setText(event.currentTarget.value)
          seek(true)
          onChange('')
        }}
        onFocus={() => seek(beginsOpen)}
        onBlur={() => seek(false)}
        onKeyDown={(event) => {
          if (!isOpen) {
            if (event.key === 'ArrowDown') seek(true)
            return
          }
          if (event.key === 'ArrowDown') setAt((at + 1) % found.length)
          else if (event.key === 'ArrowUp') setAt((at - 1 + found.length) % found.length)
          // What an earlier text has found is not meant.
          else if (event.key === 'Enter') choose(isOfText ? found[at] : undefined)
          else if (event.key === 'Escape') seek(false)
          else return
          event.preventDefault()
        }}
      />
      <div id={`${id}-list`} role="listbox" aria-label={label} class="picker-list" hidden={!isOpen}>
        {found.map((one, index) => (
          <div
            key={one.id}
            id={`${id}-${index}`}
            role="option"
            aria-selected={index === at}
            onPointerDown={(event) => {
              event.preventDefault()
              choose(one)
            }}
          >
            <Text>{one.label}</Text>
            {one.about && (
              <span class="soft">
                <Text>{one.about}</Text>
              </span>
            )}
          </div>
        ))}
      </div>
      <div role="status">
        {isOfText && search.sought && !search.error && found.length === 0 && <p class="soft small">{none}</p>}
      </div>
      {isOfText && search.error && <ErrorNote error={search.error} onRetry={again} />}
    </div>
  )
}
