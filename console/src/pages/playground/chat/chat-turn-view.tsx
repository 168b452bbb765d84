import { Alert, Badge, Box, Button, Code, Collapse, Group, Loader, Paper, Stack, Text } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { IconAlertCircle, IconChevronDown, IconChevronRight } from '@tabler/icons-react';
import { duration } from '../../../format/time.ts';
import { Preview } from '../image-inputs.tsx';
import { JobCost } from '../job-cost.tsx';
import { AnswerText } from './answer-text.tsx';
import type { AssistantTurn, ChatTurn, ToolCall } from './chat-request.ts';

/** One turn of a chat, whoever's it is. */
export function ChatTurnView({ turn }: { turn: ChatTurn }) {
  if (turn.role === 'assistant') return <AssistantView turn={turn} />;
  return (
    <Paper withBorder p="sm" bg="var(--mantine-color-default-hover)" component="article">
      <Text size="xs" fw={600} c="dimmed" mb={4}>
        {turn.role === 'user' ? 'You' : `Result of ${turn.name}`}
      </Text>
      <Text className="said">{turn.text}</Text>
      {turn.role === 'user' && turn.images.length > 0 && (
        <Group mt="xs" gap="xs">
          {turn.images.map((url) => (
            <Preview key={url} url={url} />
          ))}
        </Group>
      )}
    </Paper>
  );
}

function AssistantView({ turn }: { turn: AssistantTurn }) {
  const isWaiting = turn.state === 'running' && turn.text === '' && turn.toolCalls.length === 0;
  return (
    <Paper withBorder p="sm" component="article" aria-busy={turn.state === 'running'} data-testid="answer">
      <Group justify="space-between" mb={4} wrap="nowrap">
        <Text size="xs" fw={600} c="dimmed" style={{ overflowWrap: 'anywhere' }}>
          {turn.model}
        </Text>
        <TurnState turn={turn} />
      </Group>
      <Stack gap="xs">
        {turn.reasoning !== '' && <Reasoning text={turn.reasoning} />}
        {isWaiting && <Loader size="sm" type="dots" aria-label="Waiting for the answer" />}
        {turn.text !== '' && <AnswerText text={turn.text} isGrowing={turn.state === 'running'} />}
        {turn.toolCalls.map((call) => (
          <ToolCallView key={call.id} call={call} />
        ))}
        {turn.error !== undefined && (
          <Alert
            color="red"
            variant="light"
            icon={<IconAlertCircle aria-hidden />}
            title="The answer failed"
            role="alert"
          >
            {turn.error}
          </Alert>
        )}
        {turn.state !== 'running' && <JobCost requestId={turn.jobId} hasTime={false} />}
      </Stack>
    </Paper>
  );
}

function TurnState({ turn }: { turn: AssistantTurn }) {
  if (turn.state === 'stopped')
    return (
      <Badge color="gray" variant="light" tt="none">
        stopped
      </Badge>
    );
  if (turn.finishReason === 'length')
    return (
      <Badge color="yellow" variant="light" tt="none">
        cut at max tokens
      </Badge>
    );
  if (turn.firstAt === undefined) return null;
  return (
    <Text size="xs" c="dimmed" className="numbers">
      first word after {duration(turn.firstAt - turn.startedAt)}
      {turn.endedAt !== undefined && `, all after ${duration(turn.endedAt - turn.startedAt)}`}
    </Text>
  );
}

function Reasoning({ text }: { text: string }) {
  const [isOpen, { toggle }] = useDisclosure(false);
  return (
    <Box>
      <Button
        variant="subtle"
        size="compact-sm"
        onClick={toggle}
        aria-expanded={isOpen}
        leftSection={isOpen ? <IconChevronDown size={16} aria-hidden /> : <IconChevronRight size={16} aria-hidden />}
      >
        Reasoning
      </Button>
      <Collapse expanded={isOpen}>
        <Text size="sm" c="dimmed" className="said" pl="md" py="xs">
          {text}
        </Text>
      </Collapse>
    </Box>
  );
}

function ToolCallView({ call }: { call: ToolCall }) {
  return (
    <Box>
      <Text size="sm" fw={600}>
        Calls {call.name}
      </Text>
      <Code block>{indented(call.arguments)}</Code>
    </Box>
  );
}

function indented(json: string): string {
  try {
    return JSON.stringify(JSON.parse(json), null, 2);
  } catch {
    // It is still being written, or the model produced invalid JSON.
    return json;
  }
}
