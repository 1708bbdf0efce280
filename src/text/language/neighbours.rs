//! Languages without a row of their own, known only so that they are not mistaken for one that has.
//!
//! A Pashto article holds enough Persian words to pass for Persian. Where a neighbour explains a text best, its
//! language is `und`: that is a partition like any other, and better than spoiling somebody's Persian.

use super::script::Script;

/// A language whose articles become `und`. To give it a row, move this into the table and add a sample.
pub(super) struct Neighbour {
    /// Its name, for the reader.
    #[expect(dead_code, reason = "says what the words are")]
    pub(super) name: &'static str,
    /// The script it is written in.
    pub(super) script: Script,
    /// As in [`Language`](super::Language).
    pub(super) words: &'static str,
    /// As in [`Language`](super::Language).
    pub(super) letters: &'static str,
}

/// Every neighbour.
pub(super) const NEIGHBOURS: &[Neighbour] = &[
    Neighbour {
        name: "Galician",
        script: Script::Latin,
        words: "de a o que e do da en un para con non unha os no se na por máis as dos como pero ao das á polo \
         pola foi son seu súa ou ser cando moi nos xa tamén está ata iso entre ten dunha nunha é sobre \
         anos despois segundo hai aínda foron antes outros dous sido eles súas onde todos este sen pode \
         dende porque lle nun mentres cun cunha desta deste seus presidente ano dixo polos polas nas aos",
        letters: "áéíñóúü",
    },
    Neighbour {
        name: "Slovenian",
        script: Script::Latin,
        words: "in je v na da se za so z s pa ki ne ni tudi bi od po kot še o ali iz če do bo k sem ko ob pri \
         lahko že biti bil tem med bilo kar več svoje zaradi",
        letters: "čšž",
    },
    Neighbour {
        name: "Basque",
        script: Script::Latin,
        words: "eta da ez ere du bat dira zen izan den baina dute zuen egin hau oso dela beste edo bere urte \
         baino gehiago",
        letters: "ñ",
    },
    Neighbour {
        name: "Filipino",
        script: Script::Latin,
        words: "ang ng sa na mga ay at si ni hindi para ito kung siya may nang pa ko niya rin kay kanyang isang \
         mula noong ako din lang sila kanilang",
        letters: "ñ",
    },
    Neighbour {
        name: "Albanian",
        script: Script::Latin,
        words: "të e në i për me një se nga ka që është dhe u më si nuk do kanë pas janë tij edhe ishte ky kjo \
         por deri ai",
        letters: "çë",
    },
    Neighbour {
        name: "Estonian",
        script: Script::Latin,
        words: "ja on ei et see kui oli ta ka mis aga oma kes seda nii välja veel või siis aasta ning selle \
         pärast kuid olid võib mida juba",
        letters: "äõöüšž",
    },
    Neighbour {
        name: "Latvian",
        script: Script::Latin,
        words: "un ir ar no par kas uz ka tas bija kā lai arī pēc bet gan vai tā savu viņš to jau gada tiek nav \
         viņa šo pie būs",
        letters: "āčēģīķļņšūž",
    },
    Neighbour {
        name: "Lithuanian",
        script: Script::Latin,
        words: "ir kad į su iš yra kaip tai bet po jis ne apie buvo dar jau už savo nuo dėl taip ar per jo prie \
         kuris jų bus nei metų",
        letters: "ąčęėįšųūž",
    },
    Neighbour {
        name: "Icelandic",
        script: Script::Latin,
        words: "og að í á er sem til við um ekki það var fyrir en með af hann því þá eru hafa frá þess hún eftir \
         verið þetta ég",
        letters: "áðéíóöúýþæ",
    },
    Neighbour {
        name: "Welsh",
        script: Script::Latin,
        words: "yn y a i o ar yr ei wedi mae bod gan am oedd fod ac eu hyn gyda roedd nid fel",
        letters: "âêîôûŵŷ",
    },
    Neighbour {
        name: "Irish",
        script: Script::Latin,
        words: "an na ar a i is go le do agus bhí tá ag sé nach leis mar sin gur",
        letters: "áéíóú",
    },
    Neighbour {
        name: "Somali",
        script: Script::Latin,
        words: "oo iyo ka in ku waa ayaa uu ee ay la soo si loo waxa waxaa lagu aan kale",
        letters: "",
    },
    Neighbour {
        name: "Hausa",
        script: Script::Latin,
        words: "da na a ya ta ba ne an wani cewa su ce yi mai daga cikin don kuma wanda shi",
        letters: "ɓɗƙ",
    },
    Neighbour {
        name: "Uzbek",
        script: Script::Latin,
        words: "va bu bilan uchun bir ham bo deb edi esa kerak uning keyin qilish haqida",
        letters: "",
    },
    Neighbour {
        name: "Turkmen",
        script: Script::Latin,
        words: "we bu bilen bir üçin hem diýip ýaly boldy soň",
        letters: "äçňöşüýž",
    },
    Neighbour {
        name: "Northern Kurdish",
        script: Script::Latin,
        words: "û li di de ku ji bi ew jî bo yê ya wî hat wan re dike xwe ne ev",
        letters: "çêîşû",
    },
    Neighbour {
        name: "Maltese",
        script: Script::Latin,
        words: "li ta il u f dan kien minn għal ma din mill fil lil biex tal kienet fuq",
        letters: "ċġħżà",
    },
    Neighbour {
        name: "Luxembourgish",
        script: Script::Latin,
        words: "de vun an d den en ass datt fir op mat ech hunn dat si ze eng huet net e gouf och vum",
        letters: "äëéü",
    },
    Neighbour {
        name: "Faroese",
        script: Script::Latin,
        words: "og at í á er sum til við um ikki tað var fyri men av hann eru hava frá hon eftir verið hetta eg",
        letters: "áðíóúýæø",
    },
    Neighbour {
        name: "Kyrgyz",
        script: Script::Cyrillic,
        words: "жана бул менен үчүн бир деп боюнча болгон ал эмес тууралуу кийин ошол анын бар да эле болуп",
        letters: "абвгдежзийклмнопрстуфхцчшщъыьэюяёңөү",
    },
    Neighbour {
        name: "Mongolian",
        script: Script::Cyrillic,
        words: "нь байна энэ байгаа бол юм гэж болон оны тухай хийх ба байсан гэсэн уу их дээр олон нэг түүний",
        letters: "абвгдежзийклмнопрстуфхцчшщъыьэюяёөү",
    },
    Neighbour {
        name: "Tatar",
        script: Script::Cyrillic,
        words: "һәм белән өчен бу бер дип иде булган ул да дә",
        letters: "абвгдежзийклмнопрстуфхцчшщъыьэюяёәөүҗңһ",
    },
    Neighbour {
        name: "Bashkir",
        script: Script::Cyrillic,
        words: "һәм менән өсөн был бер тип ине булған ул да",
        letters: "абвгдежзийклмнопрстуфхцчшщъыьэюяёәөүҙҫғҡңһ",
    },
    Neighbour {
        name: "Tajik",
        script: Script::Cyrillic,
        words: "ва дар аз ки ба бо ин барои то аст кард буд мешавад низ",
        letters: "абвгдежзийклмнопрстуфхцчшщъыьэюяёғӣқӯҳҷ",
    },
    Neighbour {
        name: "Pashto",
        script: Script::Arabic,
        words: "د په چې او کې ته له سره یې دي شوي هم دا دی نه یو کړي دغه شي وي څخه هغه یا به شوی ده خو کړې لپاره \
         ول",
        letters: "اآبپتټثجځچڅحخدډذرړزژږسشښصضطظعغفقکكګلمنڼوهیيېۍئءأؤة",
    },
    Neighbour {
        name: "Sindhi",
        script: Script::Arabic,
        words: "۾ جي کي جو ۽ آهي کان تي اهو به نه آهن لاء جا سان هو هڪ ته ان هن جيڪو ڪري ڪيو",
        letters: "اآبٻڀتٿٽٺثپجڄڃچڇحخدڌڏڊڍذرڙزسشصضطظعغفڦقڪکگڳڱلمنڻوهھءيئ",
    },
    Neighbour {
        name: "Uyghur",
        script: Script::Arabic,
        words: "ۋە بۇ بىر بىلەن ئۇ ئىدى ھەم بولۇپ ئۈچۈن دەپ كېيىن بولغان",
        letters: "ئابپتجچخدرزژسشغفقكگڭلمنھەوۇۆۈۋېىي",
    },
    Neighbour {
        name: "Yiddish",
        script: Script::Hebrew,
        words: "און די איז פון דער אין צו מיט אויף ניט נישט וואס האט דאס א",
        letters: "",
    },
    Neighbour {
        name: "Tigrinya",
        script: Script::Ethiopic,
        words: "ናይ ኣብ እዩ ካብ ናብ ግን ከም እቲ ምስ እቶም ዝነበረ ድማ ነቲ እዚ ኣብቲ ኢሉ ኣሎ ንሱ ስለ",
        letters: "",
    },
    Neighbour {
        name: "Samoan",
        script: Script::Latin,
        words: "o le i e ma ua na ia se lea mo ai fa a sa latou lo la aso tagata ina",
        letters: "",
    },
    Neighbour {
        name: "Chichewa",
        script: Script::Latin,
        words: "ndi kuti pa wa mu ku ya za kwa omwe izi koma ndipo cha la anali ali iye kapena pamene",
        letters: "",
    },
];
