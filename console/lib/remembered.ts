import { effect, type Signal, signal } from '@preact/signals'

/** What a browser stores for this page: a look, or the last actor. Never anything secret. */
export function remembered(
  name: 'theme' | 'actor' | 'zone' | 'density' | 'checklist' | 'keys',
): Signal<string> {
  const key = `cellkeep.${name}`
  const value = signal(read(key))
  effect(() => {
    try {
      if (value.value) localStorage.setItem(key, value.value)
      else localStorage.removeItem(key)
    } catch {
      // In a browser that stores nothing it is lost with the page.
    }
  })
  return value
}

function read(key: string): string {
  try {
    return localStorage.getItem(key) ?? ''
  } catch {
    return ''
  }
}
