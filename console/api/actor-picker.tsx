import { useEffect, useId, useState } from 'preact/hooks'
import { words } from '../copy/common.ts'
import { Text } from '../ui/text.tsx'
import { client, type Output } from './client.ts'
import { isAdmin, type Session, signedIn } from './session.ts'

type Label = Output<'actor_search'>['actors'][number]
const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i
const nameOf = ({ username, display_name }: Label): string =>
  display_name && display_name !== username ? `${display_name} (${username})` : username

/**
 * Finds an actor by the beginning of its name, or takes an id. An admin searches everybody, others the places of their
 * own roles.
 */
export function ActorPicker({
  label,
  value,
  onChange,
}: {
  label: string
  value: string
  onChange(id: string): void
}) {
  const id = useId()
  const [text, setText] = useState('')
  const [found, setFound] = useState<readonly Label[]>([])
  const [at, setAt] = useState(0)
  const isOpen = found.length > 0 && !value
  useEffect(() => {
    if (!value) return
    setFound([])
  }, [value])
  useEffect(() => {
    if (value === '' && text && uuid.test(text.trim())) onChange(text.trim())
    const stop = new AbortController()
    const timer = setTimeout(async () => {
      if (!text.trim() || value) return setFound([])
      const scopes = [
        ...new Set((signedIn.peek() as Session).role_grants.flatMap(({ scope_id }) => scope_id ?? [])),
      ]
      const tried = await client.try.actor_search(
        { query: text.trim(), limit: 8, ...(!isAdmin.peek() && { scope_ids: scopes }) },
        { signal: stop.signal },
      )
      if (stop.signal.aborted) return
      setFound(tried.ok ? tried.result.actors : [])
      setAt(0)
    }, 250)
    return () => {
      clearTimeout(timer)
      stop.abort()
    }
  }, [text, value])
  const choose = (one: Label | undefined): void => {
    if (!one) return
    setText(nameOf(one))
    onChange(one.id)
  }
  return (
    <div class="field picker">
      <label for={id}>{label}</label>
      <input
        id={id}
        class="input"
        role="combobox"
        aria-expanded={isOpen}
        aria-controls={`${id}-list`}
        aria-activedescendant={isOpen ? `${id}-${at}` : undefined}
        aria-autocomplete="list"
        autocomplete="off"
        spellcheck={false}
        placeholder={words.find_person}
        value={text}
        onInput={(event) => {
          setText(event.currentTarget.value)
          onChange('')
        }}
        onKeyDown={(event) => {
          if (!isOpen) return
          if (event.key === 'ArrowDown') setAt((at + 1) % found.length)
          else if (event.key === 'ArrowUp') setAt((at - 1 + found.length) % found.length)
          else if (event.key === 'Enter') choose(found[at])
          else if (event.key === 'Escape') setFound([])
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
            <Text>{nameOf(one)}</Text>
          </div>
        ))}
      </div>
    </div>
  )
}
