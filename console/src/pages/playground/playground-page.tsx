import { Tabs } from '@mantine/core';
import { useMediaQuery } from '@mantine/hooks';
import { IconMessage, IconMicrophone, IconMovie, IconPhoto, IconVolume } from '@tabler/icons-react';
import { getRouteApi, useNavigate } from '@tanstack/react-router';
import { useEffect } from 'react';
import { useSession } from '../../api/session.ts';
import { PageHeader } from '../../components/page-header.tsx';
import { ChatTab } from './chat/chat-tab.tsx';
import { chooseModel } from './choose-model.ts';
import type { Playground } from './make-playground.ts';
import { type PlaygroundTab, playgroundTabs } from './playground-search.ts';
import { playgroundOf } from './sessions.ts';
import { ImageTab } from './tasks/image-tab.tsx';
import { SpeechTab } from './tasks/speech-tab.tsx';
import { TranscriptionTab } from './tasks/transcription-tab.tsx';
import { VideoTab } from './tasks/video-tab.tsx';

const route = getRouteApi('/shell/playground');

const tabs = {
  chat: { label: 'Chat', icon: IconMessage, show: (of: Playground) => <ChatTab chat={of.chat} /> },
  image: { label: 'Image', icon: IconPhoto, show: (of: Playground) => <ImageTab session={of.images} /> },
  video: { label: 'Video', icon: IconMovie, show: (of: Playground) => <VideoTab session={of.videos} /> },
  speech: { label: 'Speech', icon: IconVolume, show: (of: Playground) => <SpeechTab session={of.speech} /> },
  transcription: {
    label: 'Transcription',
    icon: IconMicrophone,
    show: (of: Playground) => <TranscriptionTab session={of.transcripts} />,
  },
} as const;

/** Tries models of every kind, with the account's own limits and money. */
export function PlaygroundPage() {
  const { user } = useSession();
  const { tab = 'chat', model } = route.useSearch();
  const navigate = useNavigate();
  const playground = playgroundOf(user.id);
  useEffect(() => {
    if (model === undefined) return;
    chooseModel(playground, tab, model);
    // From now on the user chooses.
    void navigate({ to: '/playground', search: { tab }, replace: true });
  }, [playground, tab, model, navigate]);
  // With icons they take two lines there.
  const isPhone = useMediaQuery('(max-width: 48em)') ?? false;
  return (
    <>
      <PageHeader title="Playground" description="Real requests, with your account's limits and at its cost." />
      <Tabs
        value={tab}
        onChange={(next) => void navigate({ to: '/playground', search: { tab: next as PlaygroundTab }, replace: true })}
      >
        <Tabs.List mb="md">
          {playgroundTabs.map((name) => {
            const { label, icon: TabIcon } = tabs[name];
            return (
              <Tabs.Tab
                key={name}
                value={name}
                px={{ base: 8, sm: 'md' }}
                leftSection={isPhone ? undefined : <TabIcon size={18} aria-hidden />}
              >
                {label}
              </Tabs.Tab>
            );
          })}
        </Tabs.List>
        {playgroundTabs.map((name) => (
          <Tabs.Panel key={name} value={name}>
            {tab === name && tabs[name].show(playground)}
          </Tabs.Panel>
        ))}
      </Tabs>
    </>
  );
}
