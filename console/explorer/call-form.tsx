import { useMemo, useState } from 'preact/hooks'
import { CellkeepError } from '../../src/client/client.ts'
import { call, type Name } from '../api/client.ts'
import { noticeEnd } from '../api/query.ts'
import { acting, type Session, signedIn } from '../api/session.ts'
import { explain, explainRead } from '../copy/errors.ts'
import { explorer } from '../copy/explorer.ts'
import { useDraft } from '../lib/draft.ts'
import { place, to } from '../lib/router.ts'
import { Button } from '../ui/button.tsx'
import { Confirm } from '../ui/dialog.tsx'
import { Fault } from '../ui/fault.tsx'
import { SelectField } from '../ui/field.tsx'
import { Form } from '../ui/form.tsx'
import { copyText } from '../ui/id.tsx'
import { Tabs } from '../ui/link.tsx'
import { Badge } from '../ui/note.tsx'
import { Text } from '../ui/text.tsx'
import { Tree } from '../ui/tree.tsx'
import { asCurl, asJson, asTypeScript } from './copy-as.ts'
import type { Method } from './explorer-page.tsx'
import { ParamField } from './param-field.tsx'
import { inputOf, paramsOf, type Shapes, type Typed } from './schema.ts'

type Answer = { ms: number; value: unknown; fault: string | null }

/** The actor as which somebody has confirmed, once per visit, to call what changes something. */
let confirmedAs: string | undefined

/** A form for the parameters, the call, its result and its possible refusals. */
export function CallForm({ method, shapes }: { method: Method; shapes: Shapes }) {
  const own = signedIn.value as Session
  const draft = useDraft<Typed>(`call ${method.name}`, {})
  const typed = draft.form
  const [as, setAs] = useState(acting.peek() ?? '')
  const [isTried, setTried] = useState(false)
  const [isBusy, setBusy] = useState(false)
  const [isAsking, ask] = useState(false)
  const [answer, setAnswer] = useState<Answer | null>(null)
  const inputs = useMemo(
    () =>
      method.params
        .filter(({ name }) => name !== 'acting')
        .map(({ name, schema, required }) => inputOf(name, schema, required === true, shapes)),
    [method, shapes],
  )
  const takesActor = own.actors.length > 1 && method.params.some(({ name }) => name === 'acting')
  const actor = takesActor ? own.actors.find(({ id }) => id === as) : own.actor
  const doer = actor?.id ?? own.account.id
  const changes = method['x-side-effects'] === true
  const read = paramsOf(inputs, typed)
  const fault = read.fault && { ...read.fault, message: explorer.unreadable }
  const sent = { method: method.name, params: takesActor ? { ...read.params, acting: as } : read.params }
  const run = async (): Promise<void> => {
    setBusy(true)
    const began = performance.now()
    const done = (value: unknown, fault: string | null): void => {
      setAnswer({ ms: Math.round(performance.now() - began), value, fault })
      setBusy(false)
    }
    try {
      done(await call(method.name as Name, sent.params as never, null), null)
      draft.drop()
    } catch (error) {
      if (!(error instanceof CellkeepError)) throw error
      noticeEnd(error)
      done(error.data, changes ? explain(error) : explainRead(error))
    }
  }
  const submit = (): void => {
    setTried(true)
    if (fault) return
    if (changes && confirmedAs !== doer) ask(true)
    else void run()
  }
  const tab = place.value.query.get('tab') ?? ''
  return (
    <section class="section">
      <header>
        <h2>{method.name}</h2>
        <Badge kind={changes ? 'warn' : 'ok'}>{changes ? explorer.changes : explorer.reads}</Badge>
        <span class="soft">{explorer.who(method['x-auth'])}</span>
      </header>
      <p>{method.description ?? method.summary}</p>
      <Form class="stack" onSubmit={submit}>
        {inputs.map((input) => (
          <ParamField
            key={input.name}
            input={input}
            typed={typed}
            onType={(path, text) => draft.set({ [path]: text })}
            fault={isTried ? fault : undefined}
          />
        ))}
        {takesActor && (
          <SelectField
            label={explorer.acting}
            value={as}
            options={own.actors.map(({ id, name }) => ({ value: id, label: name }))}
            onChange={setAs}
          />
        )}
        <div class="row">
          <Button kind="primary" type="submit" isBusy={isBusy}>
            {explorer.call}
          </Button>
          <Button icon="copy" onClick={() => void copyText(asCurl(sent))}>
            {explorer.copy_curl}
          </Button>
          <Button icon="copy" onClick={() => void copyText(asTypeScript(sent))}>
            {explorer.copy_typescript}
          </Button>
          <Button icon="copy" onClick={() => void copyText(asJson(sent))}>
            {explorer.copy_json}
          </Button>
        </div>
      </Form>
      <Tabs
        label={explorer.parts}
        tabs={Object.entries(explorer.tabs).map(([key, label]) => ({
          href: to('/api', { method: method.name, tab: key }),
          label,
          isCurrent: key === tab,
        }))}
      />
      {tab === 'refusals' ? (
        <Refusals of={method} />
      ) : tab === 'schema' ? (
        <Tree label={explorer.tabs.schema} of={method.params} />
      ) : (
        <div class="stack" aria-live="polite">
          {answer ? (
            <>
              <Fault text={answer.fault} />
              <h3>{explorer.answered(answer.ms)}</h3>
              <Tree label={explorer.tabs['']} of={answer.value} />
            </>
          ) : (
            <p class="soft">{explorer.not_called}</p>
          )}
        </div>
      )}
      {isAsking && (
        <Confirm
          title={explorer.change_question}
          verb={explorer.call}
          kind="primary"
          onConfirm={() => {
            confirmedAs = doer
            ask(false)
            void run()
          }}
          onClose={() => ask(false)}
        >
          <p>
            <Text long>{explorer.change_about(actor?.name ?? '', method.name)}</Text>
          </p>
        </Confirm>
      )}
    </section>
  )
}

const Refusals = ({ of }: { of: Method }) => (
  <dl class="facts">
    {(of['x-error-reasons'] ?? []).map((reason) => [
      <dt key={reason}>
        <code>{reason}</code>
      </dt>,
      <dd key={`${reason} text`}>{explain({ reason, data: {}, status: 0 })}</dd>,
    ])}
  </dl>
)
