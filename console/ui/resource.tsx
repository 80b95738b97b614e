import type { ComponentChildren } from 'preact'
import { words } from '../copy/common.ts'
import { explainRead, type Refused } from '../copy/errors.ts'
import { Button } from './button.tsx'
import { Icon, type IconName } from './icon.tsx'
import { Note } from './note.tsx'
import { useWait } from './wait.ts'
import { Words } from './words.tsx'

export type State<T> = { data: T | undefined; error: Refused | null; isFetching: boolean; retry(): void }

/** The states of a list or record, so that no page forgets one; `children` draws the data, even if old. */
export function Resource<T>({
  of,
  empty,
  isEmpty = (data) => Array.isArray(data) && data.length === 0,
  lines = 3,
  children,
}: {
  of: State<T>
  empty?: ComponentChildren
  isEmpty?: (data: T) => boolean
  lines?: number
  children: (data: T) => ComponentChildren
}) {
  const { data, error, isFetching, retry } = of
  const fault = error && <ErrorNote error={error} isBusy={isFetching} onRetry={retry} />
  if (data === undefined) return fault ?? <Skeleton lines={lines} />
  return (
    <div class={error ? 'stack' : undefined} aria-busy={isFetching || undefined}>
      {fault}
      <div class={error ? 'is-stale' : undefined}>{isEmpty(data) && empty ? empty : children(data)}</div>
    </div>
  )
}

/** Below a list that is no table: reads its next page, as the `verb` says; `children`: what to say beside it. */
export const More = ({
  of: { hasMore, isFetching, more },
  verb = words.more_rows,
  children,
}: {
  of: { hasMore: boolean; isFetching: boolean; more(): void }
  verb?: string
  children?: ComponentChildren
}) =>
  hasMore && (
    <div class="row">
      {children}
      <Button isBusy={isFetching} onClick={more}>
        {verb}
      </Button>
    </div>
  )

/** Why something could not be read, and what to do; the request id is in the server's log. */
export function ErrorNote({
  error,
  isBusy,
  onRetry,
}: {
  error: Refused
  isBusy?: boolean
  onRetry?: () => void
}) {
  const { request_id } = error.data
  const text = explainRead(error)
  const wait = useWait(error)
  return (
    <div role="alert">
      <Note
        kind="bad"
        action={
          onRetry && (
            <Button small isBusy={isBusy} wait={wait} onClick={onRetry}>
              {words.try_again}
            </Button>
          )
        }
      >
        <Words>{text}</Words>
        {typeof request_id === 'string' && !text.includes(request_id) && (
          <div class="soft small">{words.request(request_id)}</div>
        )}
      </Note>
    </div>
  )
}

export const Skeleton = ({ lines }: { lines: number }) => (
  <div class="skeleton" aria-busy="true">
    <span class="hidden-text">{words.loading}</span>
    {Array.from({ length: lines }, (_, index) => (
      <i key={index} />
    ))}
  </div>
)

/** Nothing here yet: what belongs here, and how to begin. */
export const Empty = ({
  icon,
  title,
  children,
  action,
}: {
  icon: IconName
  /** Absent if the page itself has this name. */
  title?: string
  children?: ComponentChildren
  action?: ComponentChildren
}) => (
  <div class="empty">
    <Icon name={icon} />
    {title && <strong>{title}</strong>}
    {children && <p>{children}</p>}
    {action}
  </div>
)
