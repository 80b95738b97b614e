import '../../../console/styles/tokens.css'
import '../../../console/styles/base.css'
import '../../../console/styles/ui.css'
import '../../../console/styles/shell.css'
import { type ComponentChildren, render } from 'preact'
import { useState } from 'preact/hooks'
import { startRouter } from '../../../console/lib/router.ts'
import { AskText } from '../../../console/ui/ask-text.tsx'
import { Button, type ButtonKind, IconButton } from '../../../console/ui/button.tsx'
import { DataTable } from '../../../console/ui/data-table.tsx'
import { DateField, EndField, endIn } from '../../../console/ui/date-field.tsx'
import { Confirm } from '../../../console/ui/dialog.tsx'
import { Facts } from '../../../console/ui/facts.tsx'
import { Fault } from '../../../console/ui/fault.tsx'
import {
  Checkbox,
  Choices,
  Field,
  PasswordField,
  SelectField,
  Switch,
  TextArea,
} from '../../../console/ui/field.tsx'
import { Form } from '../../../console/ui/form.tsx'
import { Id } from '../../../console/ui/id.tsx'
import { RowLink, Tabs } from '../../../console/ui/link.tsx'
import { Menu } from '../../../console/ui/menu.tsx'
import { Badge, Note } from '../../../console/ui/note.tsx'
import { Page } from '../../../console/ui/page.tsx'
import { Empty, ErrorNote, Skeleton } from '../../../console/ui/resource.tsx'
import { Secrets, showSecret } from '../../../console/ui/secret.tsx'
import { Text } from '../../../console/ui/text.tsx'
import { Time, Until } from '../../../console/ui/time.tsx'
import { Toasts, toast } from '../../../console/ui/toast.tsx'
import { Tree } from '../../../console/ui/tree.tsx'

const at = '2026-11-22T08:14:00.000Z'
const Part = ({ name, children }: { name: string; children: ComponentChildren }) => (
  <section class="section" aria-label={name}>
    <h2>{name}</h2>
    {children}
  </section>
)
const buttonKinds: ButtonKind[] = ['plain', 'primary', 'danger', 'sure', 'quiet']

const names = Array.from({ length: 5_000 }, (_, index) => `row ${index}`)
/** Each seventh row is higher than it is taken for before it is seen, as a card on a phone may be. */
const linesOf = (name: string): string[] =>
  Array.from({ length: Number(name.slice(4)) % 7 === 3 ? 4 : 1 }, (_, line) => `line ${line + 1}`)

const LongTable = () => (
  <DataTable
    label="Long table"
    rows={names}
    keyOf={(name) => name}
    columns={[
      { head: 'Name', cell: (name) => <RowLink href={`#${name}`}>{name}</RowLink> },
      { head: 'Lines', cell: (name) => linesOf(name).map((line) => <div key={line}>{line}</div>) },
    ]}
  />
)

/** Every part of the kit in its states, alone: keys and looks are tested here without a server. */
function Gallery() {
  return (
    <div class="shell">
      <main id="main">
        <Page title="Gallery" tabs={<Tabs label="Parts" tabs={tabs} />}>
          <Part name="Buttons">
            <div class="row">
              {buttonKinds.map((kind) => (
                <Button key={kind} kind={kind} onClick={() => toast(`Pressed ${kind}`)}>
                  {kind}
                </Button>
              ))}
              <Button isBusy>busy</Button>
              <Button disabled="It rains" onClick={() => toast('It was off')}>
                disabled
              </Button>
              <Button wait={42}>limited</Button>
              <IconButton icon="copy" label="Copy it" />
            </div>
          </Part>
          <Fields />
          <Part name="Text">
            <Text>{'gnp.\u202Eexe\u0007'}</Text>
            <Id id="3f2a0000-0000-4000-8000-000000009c1d" />
            <Time at={at} />
            <Until at={at} />
            <div class="row">
              {(['plain', 'accent', 'ok', 'warn', 'bad'] as const).map((kind) => (
                <Badge key={kind} kind={kind}>
                  {kind}
                </Badge>
              ))}
            </div>
            {(['info', 'ok', 'warn', 'bad'] as const).map((kind) => (
              <Note key={kind} kind={kind}>
                {`A note of the kind ${kind}.`}
              </Note>
            ))}
            <Facts
              of={[
                ['Name', 'ada'],
                ['E-mail', 'ada@example.com'],
              ]}
            />
          </Part>
          <Part name="States">
            <Skeleton lines={3} />
            <Empty icon="inbox" title="Nothing here" action={<Button>Begin</Button>}>
              What belongs here.
            </Empty>
            <ErrorNote
              error={{ reason: 'busy', data: { request_id: 'r-1' }, status: 503 }}
              onRetry={() => toast('Again')}
            />
            <Fault text="Something in the request is not valid." />
          </Part>
          <Part name="Tree">
            <Tree
              label="Tree"
              of={{ label: 'Handbook', tags: ['a', 'b'], meta: { deep: { deeper: true } }, none: null }}
            />
          </Part>
          <Part name="Table">
            <DataTable
              label="Table"
              rows={['ada', 'bob', 'grace']}
              keyOf={(name) => name}
              columns={[
                { head: 'Name', cell: (name) => <RowLink href={`#${name}`}>{name}</RowLink> },
                { head: 'Length', label: 'Length', cell: (name) => name.length },
                { head: 'End', end: true, width: '64px', cell: () => <Button small>End</Button> },
              ]}
            />
          </Part>
          <Dialogs />
        </Page>
        <Toasts />
      </main>
    </div>
  )
}

const tabs = [
  { href: '#one', label: 'One', isCurrent: true },
  { href: '#two', label: 'Two', count: 3, isCurrent: false },
]

function Fields() {
  const [text, setText] = useState('')
  const [is, set] = useState(false)
  const [choice, choose] = useState<'one' | 'two'>('one')
  const [end, setEnd] = useState(endIn('30'))
  const [time, setTime] = useState<string | null>(at)
  const options = [
    { value: 'one' as const, label: 'One', hint: 'The first.' },
    { value: 'two' as const, label: 'Two', hint: 'The second.' },
  ]
  return (
    <Part name="Fields">
      <Field label="Plain" hint="A hint." value={text} onInput={setText} />
      <Field label="Wrong" fault="Write something." value={text} onInput={setText} />
      <TextArea label="Long" value={text} onInput={setText} />
      <Form onSubmit={() => toast('Sent')}>
        <Field label="At most ten" hint="A hint." value={text} onInput={setText} maxlength={10} />
        <TextArea label="At most twelve" value={text} onInput={setText} maxlength={12} />
        <Button type="submit">Send</Button>
      </Form>
      <PasswordField label="Password" value={text} onInput={setText} autocomplete="current-password" />
      <SelectField label="Select" value={choice} options={options} onChange={choose} />
      <Choices label="Choices" value={choice} options={options} onChange={choose} />
      <Checkbox label="Checkbox" checked={is} onChange={set} />
      <Switch label="Switch" checked={is} onChange={set} />
      <DateField label="Time" value={time} onChange={setTime} />
      <EndField value={end} onChange={setEnd} isSent={false} />
    </Part>
  )
}

function Dialogs() {
  const [open, setOpen] = useState('')
  const close = () => setOpen('')
  const done = (what: string) => {
    close()
    toast(what)
  }
  return (
    <Part name="Dialogs">
      <div class="row">
        {['confirm', 'name', 'text'].map((one) => (
          <Button key={one} onClick={() => setOpen(one)}>{`Open ${one}`}</Button>
        ))}
        <Button onClick={() => showSecret('It is ready', 'secret_svc_token_1')}>Open secret</Button>
        <Menu
          label="Menu"
          items={[
            { label: 'First', onClick: () => toast('First chosen') },
            { label: 'Second', disabled: 'Not now', onClick: () => toast('It was off') },
            { label: 'Third', danger: true, onClick: () => toast('Third chosen') },
          ]}
        />
      </div>
      {open === 'confirm' && (
        <Confirm title="End it?" verb="End it" onConfirm={() => done('Ended')} onClose={close}>
          <p>Two things stop.</p>
        </Confirm>
      )}
      {open === 'name' && (
        <Confirm
          name="grace"
          title="Delete grace?"
          verb="Delete"
          onConfirm={() => done('Deleted')}
          onClose={close}
        >
          <p>Nothing comes back.</p>
        </Confirm>
      )}
      {open === 'text' && (
        <AskText
          title="Another name"
          label="Name"
          verb="Rename"
          initial="ada"
          of={{ isBusy: false, wait: 0, error: null }}
          onSubmit={(name) => done(`Now ${name}`)}
          onClose={close}
        />
      )}
      <Secrets />
    </Part>
  )
}

startRouter()
const Shown = location.search === '?long' ? LongTable : Gallery
render(<Shown />, document.getElementById('root') as HTMLElement)
