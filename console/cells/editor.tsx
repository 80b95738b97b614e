import { useEffect, useState } from 'preact/hooks'
import { call, type Refusal } from '../api/client.ts'
import { spoil } from '../api/query.ts'
import { useRun } from '../api/run.ts'
import { acting } from '../api/session.ts'
import { cellLabel, cells } from '../copy/cells.ts'
import { words } from '../copy/common.ts'
import { explain } from '../copy/errors.ts'
import { diff, isSame, type Json, type JsonObject } from '../lib/json.ts'
import { checkData } from '../lib/json-check.ts'
import { leaveGuard, to } from '../lib/router.ts'
import { Button } from '../ui/button.tsx'
import { Fault } from '../ui/fault.tsx'
import { TextArea } from '../ui/field.tsx'
import { Note } from '../ui/note.tsx'
import { Page } from '../ui/page.tsx'
import { toast } from '../ui/toast.tsx'
import type { Got } from './cell-page.tsx'
import { ChangeList } from './change-list.tsx'
import { problemText } from './problem-text.ts'
import { ResolveConflict } from './resolve-conflict.tsx'

/** Edit, review what changes, save; a version that somebody else saved meanwhile is merged or asked about. */
export function Editor({ got, onClose }: { got: Got; onClose(): void }) {
  // What the text began from, and the version that a save expects.
  const [base, setBase] = useState({ data: got.cell.data as JsonObject, version: got.cell.version })
  const [text, setText] = useState(() => JSON.stringify(got.cell.data, null, 2))
  const [isReviewing, review] = useState(false)
  const [theirs, setTheirs] = useState<{ data: JsonObject; version: number } | null>(null)
  const cell_id = got.cell.id
  const checked = checkData(text)
  const data = 'data' in checked ? checked.data : null
  const changes = data ? diff(base.data, data) : []
  const isDirty = !data || changes.length > 0
  useLeaveGuard(isDirty)

  const readTheirs = async (): Promise<void> => {
    const { cell } = await call('cell_get', { id: cell_id }, acting.peek())
    setTheirs({ data: cell.data as JsonObject, version: cell.version })
  }
  const save = useRun(
    (next: JsonObject) =>
      call('cell_update', { cell_id, data: next, expected_version: base.version }, acting.peek()),
    { refused: (error: Refusal) => void (error.reason === 'cell_version_conflict' && readTheirs()) },
  )
  const submit = async (): Promise<void> => {
    if (!data || !(await save.send(data))) return
    leaveGuard.ask = undefined
    spoil('cell_get', 'cell_list', 'cell_audit_list')
    toast(cells.saved)
    onClose()
  }
  const next = (): void => {
    if (!data) return
    if (isSame(base.data, data)) {
      leaveGuard.ask = undefined
      toast(cells.nothing_changed)
      onClose()
    } else if (isReviewing) void submit()
    else review(true)
  }
  const taken = (merged: Json): void => {
    if (!theirs) return
    setBase(theirs)
    setText(JSON.stringify(merged, null, 2))
    setTheirs(null)
    save.reset()
    review(true)
  }
  const label = cellLabel(got.cell)
  return (
    <Page
      title={`${isDirty ? '• ' : ''}${cells.edit} ${label}`}
      heading={label}
      back={{ href: to(`/cells/${cell_id}`), label }}
      actions={
        <>
          <Button onClick={isReviewing ? () => review(false) : onClose}>
            {isReviewing ? cells.keep_editing : words.cancel}
          </Button>
          <Button
            kind="primary"
            onClick={next}
            isBusy={save.isBusy}
            wait={save.wait}
            disabled={'problem' in checked && problemText(checked.problem)}
          >
            {isReviewing ? cells.save : cells.review}
          </Button>
        </>
      }
    >
      <div
        class="stack"
        onKeyDown={(event) => {
          if (!(event.ctrlKey || event.metaKey) || event.key !== 's') return
          event.preventDefault()
          next()
        }}
      >
        {save.error && save.error.reason !== 'cell_version_conflict' && <Fault text={explain(save.error)} />}
        {isReviewing ? (
          <ChangeList changes={changes} />
        ) : (
          <>
            <TextArea
              label={cells.editor_label}
              value={text}
              onInput={setText}
              rows={24}
              mono
              fault={'problem' in checked ? problemText(checked.problem) : null}
            />
            {changes.length > 0 && <Note>{cells.changes(changes.length)}</Note>}
          </>
        )}
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

/** Asks before unsaved text is lost, by a link, by Back or by closing the tab. */
function useLeaveGuard(isDirty: boolean): void {
  useEffect(() => {
    if (!isDirty) return
    const stay = (event: BeforeUnloadEvent): void => event.preventDefault()
    leaveGuard.ask = () => confirm(cells.unsaved_question)
    addEventListener('beforeunload', stay)
    return () => {
      leaveGuard.ask = undefined
      removeEventListener('beforeunload', stay)
    }
  }, [isDirty])
}
