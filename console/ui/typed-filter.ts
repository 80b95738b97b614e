import { useEffect, useRef, useState } from 'preact/hooks'
import { place, setQuery } from '../lib/router.ts'

/**
 * The text of a filter. It gets into the address a moment after the last key, and follows other changes of the address.
 */
export function useTypedFilter(key: string): [text: string, type: (text: string) => void] {
  const asked = place.value.query.get(key) ?? ''
  const [text, type] = useState(asked)
  // Text that was typed meanwhile is newer than the echo of earlier text.
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
