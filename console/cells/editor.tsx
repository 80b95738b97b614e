import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import { ActorName } from '../api/actor-name.tsx'
import { call, type Refusal } from '../api/client.ts'
import { noticeEnd, spoil } from '../api/query.ts'
import { useRun } from '../api/run.ts'
import { acting } from '../api/session.ts'
import { cellLabel, cells } from '../copy/cells.ts'
import { words } from '../copy/common.ts'
import { explain, explainRead } from '../copy/errors.ts'
import { draftOf, dropDraft, keepDraft } from '../lib/draft.ts'
import { diff, isSame, type Json, type JsonObject } from '../lib/json.ts'
import { checkData, placeOf } from '../lib/json-check.ts'
import { to } from '../lib/router.ts'
import { Button } from '../ui/button.tsx'
import { Fault } from '../ui/fault.tsx'
import { useLeaveGuard } from '../ui/leave-guard.ts'
import { Note } from '../ui/note.tsx'
import { Page } from '../ui/page.tsx'
import { Text } from '../ui/text.tsx'
import { toast } from '../ui/toast.tsx'
import type { Got } from './cell-page.tsx'
import { ChangeList } from './change-list.tsx'
import type { Mark } from './code-editor.ts'
import { JsonEditor } from './json-editor.tsx'
import { problemText } from './problem-text.ts'
import { ResolveConflict } from './resolve-conflict.tsx'

type Base = { data: JsonObject; version: number }

/** Edit, review the changes, save; a version that somebody else saved meanwhile is merged or asked about. */
export function Editor({ got, gone, onClose }: { got: Got; gone: Refusal | null; onClose(): void }) {
  const cell_id = got.cell.id
  const [kept, setKept] = useState(() => draftOf<{ base: Base; text: string }>(cell_id))
  // The data that the text began from, and the version that a save expects.
  const [base, setBase] = useState<Base>(() => kept?.base ?? baseOf(got))
  const [text, setText] = useState(() => kept?.text ?? textOf(got.cell.data))
  const typed = useRef(text)
  typed.current = text
  const [round, setRound] = useState(0)
  const begin = (from: Base, text: string): void => {
    setBase(from)
    setText(text)
    setRound(round + 1)
  }
  const [isReviewing, review] = useState(false)
  const [theirs, setTheirs] = useState<Base | null>(null)
  // What the service found in the text that was sent last.
  const [refused, setRefused] = useState<{ text: string; marks: Mark[] } | null>(null)
  const checked = useMemo(() => checkData(text), [text])
  const data = 'data' in checked ? checked.data : null
  const changes = useMemo(() => (data ? diff(base.data, data) : []), [base, data])
  const marks = useMemo(() => {
    if ('problems' in checked)
      return checked.problems.map((one) => ({ from: one.from, to: one.to, message: problemText(one) }))
    return refused?.text === text ? refused.marks : []
  }, [checked, refused])
  const isDirty = !data || changes.length > 0
  // After Back it is kept.
  useLeaveGuard(isDirty, () => dropDraft(cell_id))
  useEffect(() => (isDirty ? keepDraft(cell_id, { base, text }) : dropDraft(cell_id)), [isDirty, base, text])
  useLayoutEffect(() => {
    // The editor, which had the focus, is hidden during the review.
    if (isReviewing && document.activeElement?.closest('[hidden]'))
      document.querySelector<HTMLElement>('h1')?.focus()
  }, [isReviewing])
  const close = (): void => {
    dropDraft(cell_id)
    onClose()
  }

  const readTheirs = useRun(
    async () => setTheirs(baseOf(await call('cell_get', { id: cell_id }, acting.peek()))),
    { refused: noticeEnd },
  )
  const save = useRun(
    (next: JsonObject) =>
      call('cell_update', { cell_id, data: next, expected_version: base.version }, acting.peek()),
    {
      done: () => {
        spoil('cell_get', 'cell_list', 'cell_audit_list')
        toast(cells.saved)
      },
      refused: (error: Refusal) => {
        noticeEnd(error)
        if (error.reason === 'cell_version_conflict') void readTheirs.send(undefined)
        const marks = marksOf(error, text)
        if (marks.length === 0) return
        setRefused({ text, marks })
        review(false)
      },
    },
  )
  const submit = async (): Promise<void> => {
    const saved = data && (await save.send(data))
    if (!saved) return
    // Text that was typed during the save continues from the saved version.
    if (typed.current === text) close()
    else setBase(baseOf(saved))
  }
  const next = (): void => {
    if (!data) return
    if (isSame(base.data, data)) {
      toast(cells.nothing_changed)
      close()
    } else if (isReviewing) void submit()
    else review(true)
  }
  const taken = (merged: Json): void => {
    if (!theirs) return
    begin(theirs, textOf(merged))
    setTheirs(null)
    save.reset()
    review(true)
  }
  const cancel = (): void => {
    if (!isDirty || confirm(words.unsaved_question)) close()
  }
  const startOver = (): void => {
    setKept(null)
    begin(baseOf(got), textOf(got.cell.data))
  }
  const label = cellLabel(got.cell)
  const isOlder = got.cell.version > base.version
  return (
    <Page
      title={`${isDirty ? '• ' : ''}${cells.edit} ${label}`}
      heading={<Text long>{label}</Text>}
      back={{ href: to(`/cells/${cell_id}`), label }}
      actions={
        <>
          <Button onClick={isReviewing ? () => review(false) : cancel}>
            {isReviewing ? cells.keep_editing : words.cancel}
          </Button>
          <Button
            kind="primary"
            shortcut="Control+S Meta+S"
            onClick={next}
            isBusy={save.isBusy}
            wait={save.wait}
            disabled={!data && marks[0]?.message}
          >
            {isReviewing ? cells.save : cells.review}
          </Button>
        </>
      }
    >
      <div class="stack">
        {save.error && save.error.reason !== 'cell_version_conflict' && <Fault text={explain(save.error)} />}
        <Fault text={readTheirs.error && explainRead(readTheirs.error)} />
        <Fault text={gone ? explain(gone) : got.can_edit ? null : cells.edit_ended} />
        {kept && (
          <Note
            action={
              <Button small onClick={startOver}>
                {cells.start_over}
              </Button>
            }
          >
            {cells.draft_kept}
          </Note>
        )}
        <div role="status">
          {isOlder && !theirs && (
            <Note
              kind="warn"
              action={
                <Button small isBusy={readTheirs.isBusy} onClick={() => void readTheirs.send(undefined)}>
                  {cells.compare}
                </Button>
              }
            >
              <ActorName id={got.cell.updated_by} /> {cells.saved_meanwhile(got.cell.version)}
            </Note>
          )}
        </div>
        {isReviewing && <ChangeList changes={changes} />}
        <div hidden={isReviewing}>
          <JsonEditor key={round} value={text} onInput={setText} marks={marks} />
        </div>
        {!isReviewing && changes.length > 0 && <Note>{cells.changes(changes.length)}</Note>}
      </div>
      {theirs && data && (
        <ResolveConflict
          base={base.data}
          theirs={theirs.data}
          mine={data}
          onTaken={taken}
          onClose={() => setTheirs(null)}
        />
      )}
    </Page>
  )
}

const textOf = (data: unknown): string => JSON.stringify(data, null, 2)
const baseOf = ({ cell }: Pick<Got, 'cell'>): Base => ({
  data: cell.data as JsonObject,
  version: cell.version,
})

type Issue = { path?: unknown[]; message?: string }

/** Places where the service found something wrong in the data; other issues have no place in the text. */
function marksOf({ reason, data: { issues } }: Refusal, text: string): Mark[] {
  if (!Array.isArray(issues)) return []
  return issues.flatMap(({ path = [], message = '' }: Issue) => {
    if (reason === 'cell_data_invalid') return [{ ...placeOf(text, path), message }]
    return path[0] === 'data' ? [{ ...placeOf(text, path.slice(1)), message }] : []
  })
}
