import { usePages } from '../api/query.ts'
import { messages } from '../copy/messages.ts'
import { place, setQuery, to } from '../lib/router.ts'
import { DataTable } from '../ui/data-table.tsx'
import { SelectField } from '../ui/field.tsx'
import { shortId } from '../ui/id.tsx'
import { Badge } from '../ui/note.tsx'
import { Page } from '../ui/page.tsx'
import { Empty, Resource } from '../ui/resource.tsx'
import { Time, Until } from '../ui/time.tsx'

type State = keyof typeof messages.states
const states = Object.keys(messages.states) as State[]
const kinds = { queued: 'accent', sent: 'ok', failed: 'bad', suppressed: 'plain' } as const

/** The mails of the server and what became of them; shows neither address nor link. */
export default function MessagesPage() {
  const sought = place.value.query.get('state')
  const state = states.find((one) => one === sought)
  const list = usePages('admin_message_list', { state }, (page) => page.messages)
  return (
    <Page title={messages.title} about={messages.about}>
      <section class="section">
        <div class="bar">
          <SelectField
            label={messages.state}
            value={(state ?? '') as State | ''}
            options={[
              { value: '', label: messages.any_state },
              ...states.map((value) => ({ value, label: messages.states[value] })),
            ]}
            onChange={(state) => setQuery({ state })}
          />
        </div>
        <Resource
          of={list}
          lines={6}
          empty={
            <Empty icon="send" title={state ? messages.none_match : messages.none}>
              {!state && messages.none_about}
            </Empty>
          }
        >
          {(rows) => (
            <DataTable
              label={messages.title}
              rows={rows}
              keyOf={({ id }) => id}
              hasMore={list.hasMore}
              more={list.more}
              columns={[
                { head: messages.what, cell: (one) => messages.whatOf(one.notice ?? one.purpose) },
                {
                  head: messages.for,
                  label: messages.for,
                  cell: ({ account_id }) =>
                    account_id ? (
                      <a href={to(`/people/${account_id}`)}>{messages.account(shortId(account_id))}</a>
                    ) : (
                      messages.invite
                    ),
                },
                {
                  head: messages.made,
                  label: messages.made,
                  cell: ({ created_at }) => <Time at={created_at} />,
                },
                {
                  head: messages.state,
                  cell: (one) => <Badge kind={kinds[one.state]}>{messages.states[one.state]}</Badge>,
                },
                {
                  head: messages.tries,
                  label: messages.tries,
                  width: '72px',
                  cell: ({ attempts }) => attempts,
                },
                {
                  head: messages.error,
                  label: messages.error,
                  cell: ({ error, next_attempt_at }) =>
                    (error || next_attempt_at) && (
                      <span>
                        {error && (messages.errors[error] ?? error)}
                        {next_attempt_at && (
                          <span class="soft">
                            {' '}
                            {messages.next} <Until at={next_attempt_at} />
                          </span>
                        )}
                      </span>
                    ),
                },
              ]}
            />
          )}
        </Resource>
      </section>
    </Page>
  )
}
