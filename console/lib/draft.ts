import { useLayoutEffect, useState } from 'preact/hooks'
import { isSame } from './json.ts'
import { movesBack } from './router.ts'

/** What was typed and not saved, only in memory: it survives the end of a session. */
const drafts = new Map<string, unknown>()
const maxCount = 20
const maxLength = 2_000_000
/** Whose drafts these are; `reader`: undefined while nobody is signed in. */
let owner: string | undefined
let reader: string | undefined

/** Says who is signed in: nobody sees the drafts of another account. */
export function draftsAreOf(account_id: string | undefined): void {
  reader = account_id
  if (!account_id) return
  if (account_id !== owner) drafts.clear()
  owner = account_id
}

export const hasDrafts = (): boolean => drafts.size > 0
addEventListener('beforeunload', (event) => {
  if (hasDrafts()) event.preventDefault()
})

export const draftOf = <T>(key: string): T | null => (drafts.get(key) as T | undefined) ?? null

/** Drops the oldest if there are too many. */
export function keepDraft(key: string, value: object): void {
  if (!reader) return
  drafts.delete(key)
  if (JSON.stringify(value).length > maxLength) return
  drafts.set(key, value)
  const [oldest] = drafts.keys()
  if (drafts.size > maxCount && oldest !== undefined) drafts.delete(oldest)
}

export const dropDraft = (key: string): void => void drafts.delete(key)

const secret = /password|secret|token|code/i
const withoutSecrets = (form: object): object =>
  Object.fromEntries(Object.entries(form).filter(([name]) => !secret.test(name)))

/**
 * The fields of a form, `first` at first. They are kept, but for those named like a secret, if the session ends, Back
 * leaves the page, or the page takes away a form that its address asks for, and dropped if the form goes for another
 * reason. `name`: what it is for, unique on its page.
 */
export function useDraft<T extends object>(name: string, first: T) {
  const [key] = useState(() => `${location.pathname} ${name}`)
  // Others may change meanwhile what the form began with.
  const [blank] = useState(first)
  const [form, setForm] = useState<T>(() => ({ ...blank, ...draftOf<T>(key) }))
  const [moves] = useState(() => movesBack.count)
  const isDirty = !isSame(form, blank)
  useLayoutEffect(() => (isDirty ? keepDraft(key, withoutSecrets(form)) : dropDraft(key)), [form])
  const [href] = useState(() => location.href)
  useLayoutEffect(
    () => () => {
      const isAskedFor = location.href === href && new URLSearchParams(location.search).has('dialog')
      if (reader && moves === movesBack.count && !isAskedFor) dropDraft(key)
    },
    [],
  )
  return {
    form,
    isDirty,
    set: (changes: Partial<T>): void => setForm((form) => ({ ...form, ...changes })),
    /** What was sent is no draft any more, even if the form stays. */
    drop: (): void => dropDraft(key),
  }
}
