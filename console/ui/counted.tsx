import { words } from '../copy/common.ts'
import { explainRead } from '../copy/errors.ts'
import { ErrorNote, type State } from './resource.tsx'

/** What a change would do, counted before a dialog asks about it; `children` says it. */
export function Counted<T>({ of, children }: { of: State<T>; children: (counts: T) => string }) {
  const { data, error, isFetching, retry } = of
  if (data === undefined && error) return <ErrorNote error={error} isBusy={isFetching} onRetry={retry} />
  return <p aria-live="polite">{data === undefined ? words.counting : children(data)}</p>
}

/** Why nothing can be confirmed yet. */
export const notCounted = ({ data, error }: State<unknown>): string | false =>
  data === undefined && (error ? explainRead(error) : words.counting)
