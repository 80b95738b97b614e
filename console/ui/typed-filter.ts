import { useEffect, useRef, useState } from 'preact/hooks'
import { place, setQuery } from '../lib/router.ts'

/** The text of a filter that is in the address a moment after the last key, and follows what else changes it there. */
export function useTypedFilter(key: string): [text: string, type: (text: string) => void] {
  const asked = place.value.query.get(key) ?? ''
  const [text, type] = useState(asked)
  // What was typed meanwhile is newer than the echo of what was typed before.
  const sent = useRef(asked)
  useEffect(() => {
    if (asked === sent.current) return
    sent.current = asked
    type(asked)
  }, [asked])
  useEffect(() => {
    const timer = setTimeout(() => {
      if (text === sent.current) return
      sent.current = text
      setQuery({ [key]: text || null })
    }, 250)
    return () => clearTimeout(timer)
  }, [text])
  return [text, type]
}
