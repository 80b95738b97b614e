import { useState } from 'preact/hooks'
import { CellkeepError } from '../../src/client/client.ts'
import { call, type Name } from '../api/client.ts'
import { noticeEnd } from '../api/query.ts'
import { server } from '../api/server.ts'
import { acting, type Session, signedIn } from '../api/session.ts'
import { explain } from '../copy/errors.ts'
import { explorer } from '../copy/explorer.ts'
import { Button } from '../ui/button.tsx'
import { Confirm } from '../ui/dialog.tsx'
import { Fault } from '../ui/fault.tsx'
import { TextArea } from '../ui/field.tsx'
import { copyText } from '../ui/id.tsx'
import { Badge } from '../ui/note.tsx'
import { Tree } from '../ui/tree.tsx'
import type { Method } from './explorer-page.tsx'

type Answer = { ms: number; value: unknown; fault: string | null }

/** Asked once per visit before the first call that changes something. */
let mayChange = false

export function CallForm({ method }: { method: Method }) {
  const [text, setText] = useState(() => JSON.stringify(exampleOf(method), null, 2))
  const [isBusy, setBusy] = useState(false)
  const [isAsking, ask] = useState(false)
  const [answer, setAnswer] = useState<Answer | null>(null)
  const changes = method['x-side-effects'] === true
  const parsed = parse(text)
  const run = async (): Promise<void> => {
    if ('fault' in parsed) return
    setBusy(true)
    const began = performance.now()
    const done = (value: unknown, fault: string | null): void => {
      setAnswer({ ms: Math.round(performance.now() - began), value, fault })
      setBusy(false)
    }
    try {
      done(await call(method.name as Name, parsed.value as never, acting.peek()), null)
    } catch (error) {
      if (!(error instanceof CellkeepError)) throw error
      noticeEnd(error)
      done(error.data, explain(error))
    }
  }
  const reasons = [...new Set((method.errors ?? []).flatMap(({ data }) => data?.reason ?? []))]
  return (
    <section class="section">
      <header>
        <h2>{method.name}</h2>
        <Badge kind={changes ? 'warn' : 'ok'}>{changes ? explorer.changes : explorer.reads}</Badge>
      </header>
      <p>{method.description ?? method.summary}</p>
      <TextArea
        label={explorer.params}
        value={text}
        onInput={setText}
        rows={6}
        mono
        fault={'fault' in parsed ? parsed.fault : null}
      />
      <div class="row">
        <Button
          kind="primary"
          isBusy={isBusy}
          onClick={() => (changes && !mayChange ? ask(true) : void run())}
        >
          {explorer.call}
        </Button>
        <Button icon="copy" onClick={() => void copyText(curlOf(method.name, text))}>
          {explorer.copy_curl}
        </Button>
      </div>
      {answer && (
        <div class="stack" aria-live="polite">
          <Fault text={answer.fault} />
          <h3>{explorer.answered(answer.ms)}</h3>
          <Tree label={explorer.result} of={answer.value} />
        </div>
      )}
      {reasons.length > 0 && (
        <details>
          <summary>{explorer.refusals}</summary>
          <dl class="facts">
            {reasons.map((reason) => [
              <dt key={reason}>
                <code>{reason}</code>
              </dt>,
              <dd key={`${reason} text`}>{explain({ reason, data: {}, status: 0 })}</dd>,
            ])}
          </dl>
        </details>
      )}
      <details>
        <summary>{explorer.schema}</summary>
        <Tree label={explorer.schema} of={method.params} />
      </details>
      {isAsking && (
        <Confirm
          title={explorer.change_question}
          verb={explorer.call}
          kind="primary"
          onConfirm={() => {
            mayChange = true
            ask(false)
            void run()
          }}
          onClose={() => ask(false)}
        >
          <p>{explorer.change_about((signedIn.value as Session).actor?.name ?? '', method.name)}</p>
        </Confirm>
      )}
    </section>
  )
}

function parse(text: string): { value: unknown } | { fault: string } {
  try {
    return { value: JSON.parse(text || '{}') }
  } catch (error) {
    return { fault: explorer.invalid((error as Error).message) }
  }
}

/** The parameters that a call needs, each with a value of its kind. */
const exampleOf = ({ params }: Method): Record<string, unknown> =>
  Object.fromEntries(
    params
      .filter(({ required }) => required)
      .map(({ name, schema }) => [name, (schema as { type?: string }).type === 'object' ? {} : '']),
  )

/** Without a credential: whoever runs it puts in a token. */
function curlOf(method: string, text: string): string {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: JSON.parse(text || '{}') }).replaceAll(
    "'",
    "'\\''",
  )
  return `curl ${location.origin}${server.paths.rpc} -H 'Content-Type: application/json' -H "Authorization: Bearer $TOKEN" -d '${body}'`
}
